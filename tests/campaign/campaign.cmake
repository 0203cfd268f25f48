# The mutual-exclusion campaign: one test for each class of faults.
kunci_add_program(kunci_campaign 20 campaign/campaign.cpp)
target_compile_definitions(kunci_campaign PRIVATE
    KUNCI_WALL_CLOCK_SHIM="$<TARGET_FILE:kunci_wall_clock_shim>")
add_dependencies(kunci_campaign kunci_wall_clock_shim)

foreach(class none links lost-replies stalls restarts errors workers clocks everything)
    add_test(NAME campaign.${class} COMMAND kunci_campaign --class ${class} --seconds 20 --seed 1)
    set_tests_properties(campaign.${class} PROPERTIES LABELS campaign TIMEOUT 180)
endforeach()
